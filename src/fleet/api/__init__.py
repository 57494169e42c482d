"""The API: HTTP and events. Every handler parses, calls control or projections, and encodes; it decides nothing."""

"""The reference pages, a module each: what the code says, as Markdown."""

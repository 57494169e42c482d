"""Projections: every question that a person can ask; the answers are view objects."""

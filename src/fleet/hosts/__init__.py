"""Hosts: what happens on a machine."""

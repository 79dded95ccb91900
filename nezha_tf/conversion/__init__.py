"""Converts models between file layouts, and checks each by running the old and the new one."""

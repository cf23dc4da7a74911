"""Statements, checked and forged."""

"""Keys, signatures and boxes, against the standards and by hand."""

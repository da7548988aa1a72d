"""What people read: tables made from records, byte-reproducible."""

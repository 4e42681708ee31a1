"""What the package is compared with, none of which shares its code."""

"""A virtual machine with a stock Debian kernel, as a machine of a lab."""

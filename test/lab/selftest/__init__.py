"""The lab itself: it makes the networks that it is told to make."""

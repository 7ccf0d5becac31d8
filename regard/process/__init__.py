"""This process and its machine: the device that computes, memory, signals, locks, and what a person sees."""

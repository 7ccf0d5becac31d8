"""What training computes in one pass where torch needs several: native loops with their gradients."""

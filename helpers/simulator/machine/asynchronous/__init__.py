"""Barriers in shared memory (mbarriers), and the copies that they wait for."""

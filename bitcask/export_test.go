package bitcask

// Lockless tells tests whether gets of strings take no lock in this build.
const Lockless = lockless

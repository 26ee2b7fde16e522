// Package humanize writes figures and names as people read them: [Size], [Count], [Plural], [Duration], [Latency],
// [Percent], [Name]. Sizes are powers of ten, as disks are sold and as "ls --si" prints them. Nothing here does I/O.
package humanize

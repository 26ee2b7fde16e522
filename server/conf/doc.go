// Package conf reads, rewrites and watches files of settings in the syntax of redis.conf.
//
// A file has a directive a line: a name, in any case, and its arguments, separated by blanks. A line that
// begins with # is a comment; there are none behind a directive. An argument with blanks stands in double
// quotes, in which \n, \r, \t, \b, \a and \xHH are escapes, or in single quotes, in which only \' is one.
// "include PATH" reads another file in its place: a relative path is relative to the file that says it, and
// one with *, ? or [ means all files that match, which may be none.
//
// The package knows no names but "include": what a directive means, and which there are, is for the caller.
package conf

// Package settings knows the settings of the server by the names of redis.conf: the [Table] of all directives, the
// kinds of values that they take, and a [Config] of their values. The file, the environment, the flags, CONFIG, INFO
// and the documentation read them from here.
//
// Where a value comes from decides which holds: the default, then the file, then the environment, then a flag; CONFIG
// SET overrides all until the next start, unless CONFIG REWRITE writes it to the file. A file is applied as a whole or
// not at all, and rewritten by package conf, which keeps comments and order. The table is constant; the methods of a
// Config may be called from several goroutines.
//
// What a setting does is for the server, which binds setters and getters to the names.
package settings

// Package inspect says what the segments and the keys of a store hold: [Look] makes a [Report], which a [Picture] draws
// as text and [Page] as one file of HTML. Names of keys are escaped in both. It changes nothing, and a report is safe
// for concurrent use.
package inspect

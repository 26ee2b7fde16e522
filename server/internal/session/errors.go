package session

import "github.com/stavedb/stave/server/command"

// The refusals that concern the session. The texts are Redis's where Redis has the case: clients
// compare them. Those of commands on keys are in package command.
const (
	errNestedMulti      command.Error = "ERR MULTI calls can not be nested"
	errExecNoMulti      command.Error = "ERR EXEC without MULTI"
	errDiscardNoMulti   command.Error = "ERR DISCARD without MULTI"
	errExecAbort        command.Error = "EXECABORT Transaction discarded because of previous errors."
	errNoProto          command.Error = "NOPROTO unsupported protocol version"
	errMessagesTooLarge command.Error = "ERR the messages of the transaction are too large; publish some of them outside of it"
	errQueueTooLarge    command.Error = "ERR the transaction is too large"
	errProtoNotInteger  command.Error = "ERR Protocol version is not an integer or out of range"
)

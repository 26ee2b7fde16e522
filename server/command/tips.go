package command

// Tips are hints for proxies and for clients that spread a command over several servers, as COMMAND INFO
// lists them: how the requests are spread, how the replies are put together, whether the same request
// gives the same reply twice. The words and their meaning are those of Redis's documentation.
func (c *Command) Tips() []string { return tips[c.Name] }

// The combinations of tips that many commands have.
var (
	tipsUncertain      = []string{"nondeterministic_output"}
	tipsUnordered      = []string{"nondeterministic_output_order"}
	tipsSummed         = []string{"request_policy:multi_shard", "response_policy:agg_sum"}
	tipsAllShards      = []string{"request_policy:all_shards", "response_policy:all_succeeded"}
	tipsAllNodes       = []string{"request_policy:all_nodes", "response_policy:all_succeeded"}
	tipsNodesReport    = []string{"nondeterministic_output", "request_policy:all_nodes", "response_policy:special"}
	tipsShardsReport   = []string{"nondeterministic_output", "request_policy:all_shards", "response_policy:special"}
	tipsAllShardsLeast = []string{"request_policy:all_shards", "response_policy:agg_min"}
)

var tips = map[string][]string{
	"client|info":                   tipsUncertain,
	"client|list":                   tipsUncertain,
	"cluster|bumpepoch":             tipsUncertain,
	"cluster|count-failure-reports": tipsUncertain,
	"cluster|getkeysinslot":         tipsUncertain,
	"cluster|info":                  tipsUncertain,
	"cluster|links":                 tipsUncertain,
	"cluster|nodes":                 tipsUncertain,
	"cluster|replicas":              tipsUncertain,
	"cluster|shards":                tipsUncertain,
	"cluster|slaves":                tipsUncertain,
	"cluster|slots":                 tipsUncertain,
	"command":                       tipsUnordered,
	"command|docs":                  tipsUnordered,
	"command|info":                  tipsUnordered,
	"command|list":                  tipsUnordered,
	"config|set":                    tipsAllNodes,
	"dbsize":                        {"request_policy:all_shards", "response_policy:agg_sum"},
	"del":                           tipsSummed,
	"dump":                          tipsUncertain,
	"exists":                        tipsSummed,
	"flushall":                      tipsAllShards,
	"flushdb":                       tipsAllShards,
	"function|delete":               tipsAllShards,
	"function|flush":                tipsAllShards,
	"function|kill":                 {"request_policy:all_shards", "response_policy:one_succeeded"},
	"function|list":                 tipsUnordered,
	"function|load":                 tipsAllShards,
	"function|restore":              tipsAllShards,
	"function|stats":                tipsShardsReport,
	"hgetall":                       tipsUnordered,
	"hkeys":                         tipsUnordered,
	"hrandfield":                    tipsUncertain,
	"hscan":                         tipsUncertain,
	"hvals":                         tipsUnordered,
	"info":                          tipsShardsReport,
	"keys":                          {"request_policy:all_shards", "nondeterministic_output_order"},
	"lastsave":                      tipsUncertain,
	"latency|doctor":                tipsNodesReport,
	"latency|graph":                 tipsNodesReport,
	"latency|histogram":             tipsNodesReport,
	"latency|history":               tipsNodesReport,
	"latency|latest":                tipsNodesReport,
	"latency|reset":                 tipsAllNodes,
	"memory|doctor":                 tipsShardsReport,
	"memory|malloc-stats":           tipsShardsReport,
	"memory|purge":                  tipsAllShards,
	"memory|stats":                  tipsShardsReport,
	"mget":                          {"request_policy:multi_shard"},
	"module|list":                   tipsUnordered,
	"mset":                          {"request_policy:multi_shard", "response_policy:all_succeeded"},
	"msetnx":                        {"request_policy:multi_shard", "response_policy:agg_min"},
	"object|encoding":               tipsUncertain,
	"object|freq":                   tipsUncertain,
	"object|idletime":               tipsUncertain,
	"object|refcount":               tipsUncertain,
	"ping":                          tipsAllShards,
	"pttl":                          tipsUncertain,
	"randomkey":                     {"request_policy:all_shards", "nondeterministic_output"},
	"scan":                          {"nondeterministic_output", "request_policy:special"},
	"script|exists":                 {"request_policy:all_shards", "response_policy:agg_logical_and"},
	"script|flush":                  tipsAllNodes,
	"script|kill":                   {"request_policy:all_shards", "response_policy:one_succeeded"},
	"script|load":                   tipsAllNodes,
	"sdiff":                         tipsUnordered,
	"sinter":                        tipsUnordered,
	"slowlog|get":                   {"request_policy:all_nodes", "nondeterministic_output"},
	"slowlog|len":                   {"request_policy:all_nodes", "response_policy:agg_sum", "nondeterministic_output"},
	"slowlog|reset":                 tipsAllNodes,
	"smembers":                      tipsUnordered,
	"spop":                          tipsUncertain,
	"srandmember":                   tipsUncertain,
	"sscan":                         tipsUncertain,
	"sunion":                        tipsUnordered,
	"time":                          tipsUncertain,
	"touch":                         tipsSummed,
	"ttl":                           tipsUncertain,
	"unlink":                        tipsSummed,
	"wait":                          tipsAllShardsLeast,
	"waitaof":                       tipsAllShardsLeast,
	"xadd":                          tipsUncertain,
	"xautoclaim":                    tipsUncertain,
	"xclaim":                        tipsUncertain,
	"xinfo|consumers":               tipsUncertain,
	"xpending":                      tipsUncertain,
	"xtrim":                         tipsUncertain,
	"zrandmember":                   tipsUncertain,
	"zscan":                         tipsUncertain,
}

package db_test

import "github.com/stavedb/stave/internal/budget"

// longTests are those that take more than some seconds.
var longTests = budget.Plan{
	Seconds: map[string]float64{
		"TestPowerCut": 60, "TestDamage": 25, "TestMergeAtEveryStep": 25, "TestModel": 12, "TestOptionSets": 15, "TestSalvageEveryBit": 8,
		"TestKillAtEveryStep": 6, "TestKillAtEveryCall": 6, "TestKill": 4,
	},
	Rest: 30,
}

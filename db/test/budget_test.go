package db_test

import "github.com/stavedb/stave/internal/test/budget"

// longTests are those that take more than some seconds.
var longTests = budget.Plan{
	Seconds: map[string]float64{
		"TestPowerCut": 600, "TestDamage": 130, "TestMergeAtEveryStep": 120, "TestSalvageEveryBit": 300, "TestOptionSets": 28, "TestModel": 25,
		"TestKillAtEveryStep": 8, "TestKillAtEveryCall": 30, "TestOptionalFiles": 5, "TestKill": 16,
	},
	OneIn: map[string]int{
		"TestPowerCut": 120, "TestDamage": 40, "TestMergeAtEveryStep": 40, "TestSalvageEveryBit": 150, "TestOptionSets": 5, "TestModel": 6,
		"TestKillAtEveryStep": 8, "TestKillAtEveryCall": 20, "TestOptionalFiles": 4, "TestKill": 8,
	},
	Rest: 45,
}

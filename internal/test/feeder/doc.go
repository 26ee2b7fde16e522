// Package feeder has no code: its tests have unpatched Redis servers as replicas of a Stave.
package feeder

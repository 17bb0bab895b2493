// The background jobs and event consumers of workflows.

import { runWorkflow } from './run.ts'
import { schedules, startTimedRuns } from './timed-runs.ts'
import { workflowTriggers } from './triggers.ts'

export const jobs = [runWorkflow, startTimedRuns]
export { schedules }
export const eventConsumers = [workflowTriggers]

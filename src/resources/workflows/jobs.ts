// The background jobs and event consumers of workflows.

import { runWorkflow } from './run.ts'
import { workflowTriggers } from './triggers.ts'

export const jobs = [runWorkflow]
export const eventConsumers = [workflowTriggers]

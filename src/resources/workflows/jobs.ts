// The background work of workflows.

import { runWorkflow } from './run.ts'
import { workflowTriggers } from './triggers.ts'

export const jobs = [runWorkflow]
export const eventConsumers = [workflowTriggers]

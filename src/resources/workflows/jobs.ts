// What workflows do in the background.

import { runWorkflow } from './run.ts'
import { workflowTriggers } from './triggers.ts'

export const jobs = [runWorkflow]
export const eventConsumers = [workflowTriggers]

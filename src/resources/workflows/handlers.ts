// Handlers of workflows besides the standard operations: the list of runs, and a test that changes
// nothing.
import type { Handlers } from '../../kernel/handler.ts'
import { listWorkflowRuns } from './runs.ts'
import { testWorkflow } from './test-workflow.ts'

export const handlers = { listWorkflowRuns, testWorkflow } satisfies Partial<Handlers>

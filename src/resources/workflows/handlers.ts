// What can be done with workflows beyond the everyday: a look at their runs, and a try without effects.
import type { Handlers } from '../../kernel/handler.ts'
import { listWorkflowRuns } from './runs.ts'
import { testWorkflow } from './test-workflow.ts'

export const handlers = { listWorkflowRuns, testWorkflow } satisfies Partial<Handlers>

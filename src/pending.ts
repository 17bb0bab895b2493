// Operations of the contract whose handler is being written; empty, and gone, before it is released.
import { Problem } from './contract/problems.ts'
import type { Handlers } from './kernel/handler.ts'

const notYet = async (): Promise<never> => {
  throw new Problem('unavailable', 'This is being written.')
}

export const pending = {
  getPublicWebForm: notYet,
  submitWebForm: notYet,
  getWebFormPage: notYet,
  getWebFormScript: notYet,
} satisfies Partial<Handlers>

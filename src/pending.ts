// Operations of the contract whose handler is being written; empty, and gone, before it is released.
import { Problem } from './contract/problems.ts'
import type { Handlers } from './kernel/handler.ts'

const notYet = async (): Promise<never> => {
  throw new Problem('unavailable', 'This is being written.')
}

export const pending = {
  getEmailRaw: notYet,
  receiveEmail: notYet,
  getPublicWebForm: notYet,
  submitWebForm: notYet,
  getWebFormPage: notYet,
  getWebFormScript: notYet,
  listCampaignSends: notYet,
  previewCampaign: notYet,
  runCampaign: notYet,
  listSuppressions: notYet,
  createSuppression: notYet,
  deleteSuppression: notYet,
  getUnsubscribePage: notYet,
  unsubscribe: notYet,
  validateImport: notYet,
  startImport: notYet,
  cancelImport: notYet,
  getImportStats: notYet,
  downloadImportErrorReport: notYet,
  listEvents: notYet,
} satisfies Partial<Handlers>

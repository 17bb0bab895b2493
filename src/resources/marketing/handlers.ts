// Handlers of marketing events, campaigns, sends, suppressions and unsubscribing.
import type { Handlers } from '../../kernel/handler.ts'
import { massDelete } from '../../kernel/resource/mass.ts'
import { getCampaignAudience } from './audience-size.ts'
import { campaigns } from './campaigns.ts'
import { marketingEvents } from './events.ts'
import { previewCampaign } from './preview.ts'
import { resendCampaignSend } from './resend.ts'
import { runCampaign } from './run.ts'
import { listCampaignSends } from './sends.ts'
import { createSuppression, deleteSuppression, listSuppressions } from './suppressions.ts'
import { testCampaign } from './test-send.ts'
import { getUnsubscribePage, unsubscribe } from './unsubscribe.ts'

export const handlers = {
  massDeleteMarketingEvents: massDelete(marketingEvents),
  massDeleteCampaigns: massDelete(campaigns),
  listCampaignSends,
  previewCampaign,
  getCampaignAudience,
  testCampaign,
  runCampaign,
  resendCampaignSend,
  listSuppressions,
  createSuppression,
  deleteSuppression,
  getUnsubscribePage,
  unsubscribe,
} satisfies Partial<Handlers>

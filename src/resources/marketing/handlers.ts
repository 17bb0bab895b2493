// What can be done with marketing events and campaigns through the API.
import type { HandlersFor } from '../../kernel/handler.ts'
import { massDestroy } from '../../kernel/mass.ts'
import { campaigns } from './campaigns.ts'
import { marketingEvents } from './events.ts'

export const handlers: HandlersFor<
  | 'listMarketingEvents'
  | 'getMarketingEvent'
  | 'createMarketingEvent'
  | 'updateMarketingEvent'
  | 'deleteMarketingEvent'
  | 'massDestroyMarketingEvents'
  | 'listCampaigns'
  | 'getCampaign'
  | 'createCampaign'
  | 'updateCampaign'
  | 'deleteCampaign'
  | 'massDestroyCampaigns'
> = {
  ...marketingEvents.handlers,
  massDestroyMarketingEvents: massDestroy(marketingEvents),
  ...campaigns.handlers,
  massDestroyCampaigns: massDestroy(campaigns),
}

// All handlers of all slices as one object: an operation of the contract without a handler does not compile. The resources
// are listed too, because every path below `/{id}` looks its record up through them (DOMAIN 4.3).
import { type OperationFact, operations } from './contract/operations.gen.ts'
import type { OperationId } from './contract/types.ts'
import type { Examiners, Locators } from './http/pipeline.ts'
import type { Context } from './kernel/context.ts'
import type { Gates, Handlers } from './kernel/handler.ts'
import { historyOf } from './kernel/history/history.ts'
import { restoring } from './kernel/history/restore.ts'
import type { EventEntity, Sight } from './kernel/query/event-visibility.ts'
import type { Resource } from './kernel/resource/definition.ts'
import { handlers as account } from './resources/account/handlers.ts'
import { handlers as accountSessions } from './resources/account/sessions.ts'
import { handlers as activityHandlers } from './resources/activities/handlers.ts'
import { activities, inheritedActivities } from './resources/activities/resource.ts'
import { timelines } from './resources/activities/timeline.ts'
import { handlers as attributeHandlers, attributes } from './resources/attributes/resource.ts'
import { handlers as authentication, gates as sessionGates } from './resources/authentication/handlers.ts'
import { sessionSight } from './resources/authentication/sessions.ts'
import { handlers as configuration, configurationSight } from './resources/configuration/handlers.ts'
import { handlers as dataTransfer } from './resources/data-transfer/handlers.ts'
import { imports } from './resources/data-transfer/resource.ts'
import { handlers as templateHandlers } from './resources/email-templates/handlers.ts'
import { emailTemplates } from './resources/email-templates/resource.ts'
import { inheritedEmails } from './resources/emails/changes.ts'
import { handlers as emailHandlers, subLists as emailsBelow } from './resources/emails/handlers.ts'
import { handlers as inbound, gates as inboundGates } from './resources/emails/inbound.ts'
import { emails } from './resources/emails/resource.ts'
import { handlers as eventHandlers } from './resources/events/handlers.ts'
import { handlers as fileHandlers, files } from './resources/files/handlers.ts'
import { fileSight } from './resources/files/rows.ts'
import { handlers as groupHandlers, groups } from './resources/groups/resource.ts'
import { assertProductLine, handlers as leadHandlers, subLists as leadsBelow } from './resources/leads/handlers.ts'
import { leads } from './resources/leads/resource.ts'
import { handlers as locationHandlers, locations } from './resources/locations/resource.ts'
import { campaigns } from './resources/marketing/campaigns.ts'
import { marketingEvents } from './resources/marketing/events.ts'
import { handlers as marketing } from './resources/marketing/handlers.ts'
import { sendSight } from './resources/marketing/sends.ts'
import { suppressionSight } from './resources/marketing/suppressions.ts'
import { gates as unsubscribeGates } from './resources/marketing/unsubscribe.ts'
import { handlers as organizationHandlers, organizations } from './resources/organizations/resource.ts'
import { handlers as personHandlers } from './resources/persons/handlers.ts'
import { persons } from './resources/persons/resource.ts'
import { handlers as pipelineHandlers, pipelines } from './resources/pipelines/resource.ts'
import { handlers as productHandlers } from './resources/products/handlers.ts'
import { products } from './resources/products/resource.ts'
import { handlers as quoteHandlers, subLists as quotesBelow } from './resources/quotes/handlers.ts'
import { quotes } from './resources/quotes/resource.ts'
import { handlers as reportHandlers } from './resources/reports/handlers.ts'
import { handlers as roleHandlers, roles } from './resources/roles/resource.ts'
import { searchHandlers } from './resources/search/handlers.ts'
import { handlers as sourceHandlers, sources } from './resources/sources/resource.ts'
import { handlers as system } from './resources/system/handlers.ts'
import { locateJob } from './resources/system/jobs.ts'
import { gates as metricsGates } from './resources/system/metrics.ts'
import { handlers as tagHandlers, tags } from './resources/tags/resource.ts'
import { examineCreation, handlers as tokenHandlers, tokenSight, tokens } from './resources/tokens/handlers.ts'
import { handlers as typeHandlers, types } from './resources/types/resource.ts'
import { userHandlers, users } from './resources/users/resource.ts'
import { handlers as warehouseHandlers } from './resources/warehouses/handlers.ts'
import { warehouses } from './resources/warehouses/resource.ts'
import { gates as webFormGates, handlers as webFormHandlers } from './resources/web-forms/handlers.ts'
import { webForms } from './resources/web-forms/resource.ts'
import { handlers as deliveryHandlers } from './resources/webhooks/handlers.ts'
import { handlers as webhookHandlers, webhooks } from './resources/webhooks/resource.ts'
import { handlers as workflowHandlers } from './resources/workflows/handlers.ts'
import { workflows } from './resources/workflows/resource.ts'

/** What users own, for a deletion that hands it on. */
const owned = () => [leads, quotes, persons, organizations, inheritedActivities, inheritedEmails]

/** What was: the same for every resource, and for deleted records too. */
const past = {
  listLeadHistory: historyOf(leads),
  listPersonHistory: historyOf(persons),
  listOrganizationHistory: historyOf(organizations),
  listQuoteHistory: historyOf(quotes),
  listProductHistory: historyOf(products),
  listActivityHistory: historyOf(activities),
  listEmailHistory: historyOf(emails),
  listAttributeHistory: historyOf(attributes),
  listTagHistory: historyOf(tags),
  listSourceHistory: historyOf(sources),
  listTypeHistory: historyOf(types),
  listPipelineHistory: historyOf(pipelines),
  listUserHistory: historyOf(users),
  listRoleHistory: historyOf(roles),
  listGroupHistory: historyOf(groups),
  listEmailTemplateHistory: historyOf(emailTemplates),
  listWebhookHistory: historyOf(webhooks),
  listWorkflowHistory: historyOf(workflows),
  listWebFormHistory: historyOf(webForms),
  listWarehouseHistory: historyOf(warehouses),
  listLocationHistory: historyOf(locations),
  listMarketingEventHistory: historyOf(marketingEvents),
  listCampaignHistory: historyOf(campaigns),
  restoreLead: restoring(leads),
  restorePerson: restoring(persons),
  restoreOrganization: restoring(organizations),
  restoreQuote: restoring(quotes),
  restoreProduct: restoring(products),
  restoreActivity: restoring(activities),
  restoreEmail: restoring(emails),
} satisfies Partial<Handlers>

export const handlers: Handlers = {
  ...authentication,
  ...account,
  ...accountSessions,
  ...tokenHandlers,
  ...leadHandlers,
  ...leadsBelow,
  ...quoteHandlers,
  ...quotesBelow,
  ...personHandlers,
  ...organizationHandlers,
  ...productHandlers,
  ...activityHandlers,
  ...timelines,
  ...emailHandlers,
  ...emailsBelow,
  ...inbound,
  ...tagHandlers,
  ...sourceHandlers,
  ...typeHandlers,
  ...pipelineHandlers,
  ...attributeHandlers,
  ...userHandlers(owned),
  ...roleHandlers,
  ...groupHandlers,
  ...templateHandlers,
  ...webhookHandlers,
  ...deliveryHandlers,
  ...workflowHandlers,
  ...webFormHandlers,
  ...warehouseHandlers,
  ...locationHandlers,
  ...marketing,
  ...configuration,
  ...dataTransfer,
  ...fileHandlers,
  ...searchHandlers(() => ({ leads, persons, organizations, quotes, products, activities, emails })),
  ...eventHandlers,
  ...reportHandlers,
  ...system,
  ...past,
}

interface Locatable {
  assertVisible(ctx: Context, id: number): Promise<void>
}

type AnyResource = Resource<unknown, never>

const shown: Partial<Record<OperationId, Locatable | AnyResource>> = {
  getToken: tokens,
  getLead: leads,
  getPerson: persons,
  getQuote: quotes,
  getOrganization: organizations,
  getProduct: products,
  getActivity: activities,
  getEmail: emails,
  getTag: tags,
  getSource: sources,
  getType: types,
  getPipeline: pipelines,
  getAttribute: attributes,
  getUser: users,
  getRole: roles,
  getGroup: groups,
  getEmailTemplate: emailTemplates,
  getWebhook: webhooks,
  getWorkflow: workflows,
  getWebForm: webForms,
  getWarehouse: warehouses,
  getLocation: locations,
  getMarketingEvent: marketingEvents,
  getCampaign: campaigns,
  getImport: imports,
  getFile: files,
  getJob: { assertVisible: locateJob },
}

/** By entity, for what is the same for all of them: history, restore. */
export const resources: ReadonlyMap<string, AnyResource> = new Map(
  Object.values(shown).flatMap((each): [string, AnyResource][] => ('entity' in each ? [[each.entity, each]] : [])),
)

/**
 * Who may know of events, by the type of record they are about: of resources, what their lists show; of everything else, what its own
 * slice says. A server does not start when one is missing.
 */
export const sights: ReadonlyMap<string, Sight> = new Map<string, Sight>([
  ...[...resources.values()].map((each): [string, Sight] => [each.entity, each.sight]),
  ...Object.entries({
    tokens: tokenSight,
    sessions: sessionSight,
    files: fileSight,
    configuration: configurationSight,
    suppressions: suppressionSight,
    sends: sendSight,
  } satisfies Partial<Record<EventEntity, Sight>>),
])

const pathOf = (operation: OperationId): string => (operations[operation] satisfies OperationFact).path

/** What refuses a call of an operation that is open to everybody, before its body is read. */
export const gates: Gates = { ...sessionGates, ...inboundGates, ...metricsGates, ...unsubscribeGates, ...webFormGates }

/** By operation that writes a record, what its rules have against a body that is refused already (DOMAIN 4.3). */
export const examiners: Examiners = Object.assign(
  { createToken: examineCreation },
  ...[...resources.values()].map(({ examiners }) => examiners),
)

/** Path of a record, or of a link below one, to the function that finds it, or throws 404 or 412. */
export const locators: Locators = {
  ...Object.fromEntries(
    Object.entries(shown).map(([operation, resource]) => [pathOf(operation as OperationId), resource.assertVisible]),
  ),
  [pathOf('updateLeadProduct')]: assertProductLine,
}

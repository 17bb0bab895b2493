// Collects the handlers of all slices in one object. An operation without a handler, or with two,
// does not compile. The common handlers of all resources are taken from src/resources.ts: standard
// operations, history, restore and lookups.
import { createSearchIndex } from '../db/search/search-index.ts'
import { operations } from './contract/operations.gen.ts'
import type { Examiners, RecordGuards } from './http/pipeline.ts'
import { type Handlers, type IntersectionOf, mergeHandlers, type PublicGuards } from './kernel/handler.ts'
import { collectDeleteHooks } from './kernel/history/delete-hooks.ts'
import type { EventEntity, Sight } from './kernel/query/event-visibility.ts'
import type { Resource } from './kernel/resource/definition.ts'
import type { NamedFinders } from './kernel/resource/named-references.ts'
import { findTyped } from './kernel/resource/typed-references.ts'
import { handlers as account } from './resources/account/handlers.ts'
import { handlers as accountSessions } from './resources/account/sessions.ts'
import { deleteHooks as activitiesDeleteHooks } from './resources/activities/delete-hooks.ts'
import { handlers as activityHandlers } from './resources/activities/handlers.ts'
import { handlers as removalHandlers } from './resources/activities/removal.ts'
import { inheritedActivities } from './resources/activities/resource.ts'
import { timelines } from './resources/activities/timeline.ts'
import { deleteHooks as attributesDeleteHooks } from './resources/attributes/delete-hooks.ts'
import { handlers as attributeHandlers } from './resources/attributes/resource.ts'
import { handlers as authentication, publicGuards as sessionGuards } from './resources/authentication/handlers.ts'
import { sessionSight } from './resources/authentication/sessions.ts'
import { handlers as bulkHandlers } from './resources/bulk/handlers.ts'
import { handlers as configuration, configurationSight } from './resources/configuration/handlers.ts'
import { exportSight } from './resources/data-transfer/exports.ts'
import { handlers as dataTransfer } from './resources/data-transfer/handlers.ts'
import { handlers as templateHandlers } from './resources/email-templates/handlers.ts'
import { inheritedEmails } from './resources/emails/change-email.ts'
import { handlers as emailHandlers, subLists as emailsBelow } from './resources/emails/handlers.ts'
import { handlers as inbound, publicGuards as inboundGuards } from './resources/emails/inbound.ts'
import { handlers as eventHandlers } from './resources/events/handlers.ts'
import { handlers as fileHandlers, files } from './resources/files/handlers.ts'
import { fileSight } from './resources/files/rows.ts'
import { findNamedStage } from './resources/leads/find-stage-by-name.ts'
import { handOverHandlers } from './resources/leads/hand-over.ts'
import { handlers as leadHandlers, subLists as leadsBelow, requireProductLine } from './resources/leads/handlers.ts'
import { deleteHooks as marketingDeleteHooks } from './resources/marketing/delete-hooks.ts'
import { handlers as marketing } from './resources/marketing/handlers.ts'
import { sendSight } from './resources/marketing/sends.ts'
import { suppressionSight } from './resources/marketing/suppressions.ts'
import { publicGuards as unsubscribeGuards } from './resources/marketing/unsubscribe.ts'
import { handlers as organizationHandlers } from './resources/organizations/resource.ts'
import { handlers as personHandlers } from './resources/persons/handlers.ts'
import { handlers as pipelineHandlers } from './resources/pipelines/resource.ts'
import { handlers as productHandlers } from './resources/products/handlers.ts'
import { handlers as quoteHandlers, subLists as quotesBelow } from './resources/quotes/handlers.ts'
import { handlers as reportHandlers } from './resources/reports/handlers.ts'
import { handlers as roleHandlers } from './resources/roles/resource.ts'
import { deleteHooks as searchDeleteHooks } from './resources/search/delete-hooks.ts'
import { searchHandlers } from './resources/search/handlers.ts'
import { handlers as system } from './resources/system/handlers.ts'
import { locateJob } from './resources/system/jobs.ts'
import { publicGuards as metricsGuards } from './resources/system/metrics.ts'
import { handlers as tagHandlers } from './resources/tags/resource.ts'
import { examineCreation, handlers as tokenHandlers, tokenSight, tokens } from './resources/tokens/handlers.ts'
import { removalOfUsers, userHandlers } from './resources/users/resource.ts'
import { inheritedViews } from './resources/views/resource.ts'
import { handlers as warehouseHandlers } from './resources/warehouses/handlers.ts'
import { publicGuards as webFormGuards, handlers as webFormHandlers } from './resources/web-forms/handlers.ts'
import { handlers as deliveryHandlers } from './resources/webhooks/handlers.ts'
import { handlers as webhookHandlers } from './resources/webhooks/resource.ts'
import { handlers as workflowHandlers } from './resources/workflows/handlers.ts'
import { entityOfTest } from './resources/workflows/test-workflow.ts'
import * as defined from './resources.ts'

const { activities, emails, leads, organizations, persons, products, quotes } = defined

/** The standard operations that a slice carries out in its own way. */
const special = [
  ...(['deleteLead', 'deletePerson', 'deleteOrganization', 'deleteEmail', 'deleteTag'] as const),
  ...(['updatePipeline', 'deletePipeline', 'upsertPipeline', 'createWebhook', 'upsertWebhook'] as const),
  ...(['createAttribute', 'updateAttribute', 'deleteAttribute', 'upsertAttribute'] as const),
  ...(['createUser', 'updateUser', 'deleteUser', 'upsertUser'] as const),
]

type Standard = IntersectionOf<(typeof defined)[keyof typeof defined]['handlers']>

const standard = Object.fromEntries(
  Object.values(defined)
    .flatMap(({ handlers }) => Object.entries(handlers))
    .filter(([operation]) => !special.some((each) => each === operation)),
) as Omit<Standard, (typeof special)[number]>

/**
 * Returns the resources whose records have an owner. When a user is deleted, these records pass to
 * another user.
 */
const owned = () => [leads, quotes, persons, organizations, inheritedActivities, inheritedEmails, inheritedViews]

/** Deletes users with many records. */
export const userRemoval = removalOfUsers(owned)

export const handlers: Handlers = mergeHandlers(
  standard,
  authentication,
  account,
  accountSessions,
  tokenHandlers,
  leadHandlers,
  handOverHandlers,
  leadsBelow,
  quoteHandlers,
  quotesBelow,
  personHandlers,
  organizationHandlers,
  productHandlers,
  activityHandlers,
  removalHandlers,
  timelines,
  emailHandlers,
  emailsBelow,
  inbound,
  tagHandlers,
  pipelineHandlers,
  attributeHandlers,
  userHandlers(owned, userRemoval),
  roleHandlers,
  templateHandlers,
  webhookHandlers,
  deliveryHandlers,
  workflowHandlers,
  webFormHandlers,
  warehouseHandlers,
  marketing,
  configuration,
  bulkHandlers,
  dataTransfer,
  fileHandlers,
  searchHandlers(() => ({ leads, persons, organizations, quotes, products, activities, emails })),
  eventHandlers,
  reportHandlers,
  system,
)

/** All resources, by entity name. */
export const resources: ReadonlyMap<string, Resource<unknown, never>> = new Map(
  Object.values(defined).map((each) => [each.entity, each]),
)

/** The search documents of all resources that declare one. */
export const searchDocuments = [...resources.values()].flatMap(({ searchDocument }) => searchDocument ?? [])

/** The search index for `GET /search` and the parameter `q`. */
export const searchIndex = createSearchIndex(searchDocuments)

/**
 * The visibility rules of events, by record type. The rule comes from the resource, or from the
 * slice for a type without a resource. A server does not start when a rule is missing.
 */
export const sights: ReadonlyMap<string, Sight> = new Map<string, Sight>([
  ...[...resources.values()].map((each): [string, Sight] => [each.entity, each.sight]),
  ...Object.entries({
    tokens: tokenSight,
    sessions: sessionSight,
    files: fileSight,
    configuration: configurationSight,
    exports: exportSight,
    suppressions: suppressionSight,
    sends: sendSight,
  } satisfies Partial<Record<EventEntity, Sight>>),
])

/**
 * Checks of public operations, by operationId. A check may refuse a call before the body is read.
 */
export const publicGuards: PublicGuards = {
  ...sessionGuards,
  ...inboundGuards,
  ...metricsGuards,
  ...unsubscribeGuards,
  ...webFormGuards,
}

/**
 * Functions by operationId that check the rules for a body that the schema has already refused.
 */
export const examiners: Examiners = Object.assign(
  { createToken: examineCreation },
  ...[...resources.values()].map(({ examiners }) => examiners),
)

/** Finds the records that a body names, for stages and where the schema does not tell the type. */
export const namedFinders: NamedFinders = {
  stages: findNamedStage,
  records: findTyped({ [operations.testWorkflow.path]: entityOfTest }),
}

/**
 * Checks by path of a record, or of a link below a record. A check throws 404 when the caller may
 * not see the record, and 412 when If-Match names another version.
 */
export const recordGuards: RecordGuards = {
  ...Object.fromEntries([...resources.values()].map((each) => [each.getOperation.path, each.assertVisible])),
  [operations.getToken.path]: tokens.assertVisible,
  [operations.getFile.path]: files.assertVisible,
  [operations.getJob.path]: locateJob,
  [operations.updateLeadProduct.path]: requireProductLine,
}

/** The delete hooks of all slices, in the order in which they run. */
export const deleteHooks = collectDeleteHooks([
  attributesDeleteHooks,
  activitiesDeleteHooks,
  marketingDeleteHooks,
  searchDeleteHooks,
])

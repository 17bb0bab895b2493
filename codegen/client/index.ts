// `@accord-crm/client`: the typed client of Accord CRM. openapi-fetch types each call by the
// contract; this package adds tokens, retries, paging, exceptions, the event feed and webhook
// signatures.

export type { components, operations, paths } from '../../src/contract/schema.gen.ts'
export { type BulkAnswer, type BulkLine, type BulkLines, type BulkOptions, bulk } from './bulk.ts'
export { type AccordClient, type ClientOptions, createAccordClient } from './client.ts'
export { type SubscribeOptions, subscribeToEvents } from './events.ts'
export { type ListedRecord, type ListPath, type ListQuery, listAll } from './pages.ts'
export { AccordProblem, type AccordProblemCode, unwrap } from './problem.ts'
export { type ReadReply, updateIfUnchanged } from './update.ts'
export { verifyWebhook, type WebhookEvent, WebhookVerificationError } from './webhooks.ts'

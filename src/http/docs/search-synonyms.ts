// Words that readers search for, with the words of this documentation. A query finds the entries
// with its own word and those with one of these; a blank separates alternatives.

const groups: readonly (readonly [words: string, meant: string])[] = [
  // Records
  ['customer client contact people individual kunde kontakt', 'person persons organization'],
  ['company account firm business firma unternehmen', 'organization organizations'],
  ['deal opportunity prospect sale sales', 'lead leads'],
  ['offer estimate proposal invoice angebot rechnung', 'quote quotes'],
  ['task todo meeting call appointment reminder note event aufgabe termin', 'activity activities'],
  ['einladung invitation invite', 'invitation meeting calendar activity'],
  ['item article sku goods artikel', 'product products'],
  ['warehouse stock inventory lager', 'inventories warehouse'],
  ['mail message inbox outbox nachricht', 'e-mail emails'],
  ['newsletter mailing bulkmail', 'campaign campaigns marketing'],
  ['label category tagging', 'tag tags'],
  ['field custom property column feld', 'attribute attributes'],
  ['team', 'group groups'],
  ['colleague employee agent salesperson member benutzer', 'user users'],
  ['document attachment picture image photo upload datei', 'file files'],
  ['funnel board kanban phase', 'pipeline stages kanban'],
  ['dashboard statistics chart analytics metrics', 'report reports'],
  ['automation trigger rule zapier', 'workflow workflows webhook'],
  // Tasks
  ['add insert new make anlegen', 'create'],
  ['edit modify change patch ändern', 'update'],
  ['remove destroy drop löschen', 'delete'],
  ['undelete undo recover trash', 'restore undo'],
  ['find filter query suche', 'search query filter'],
  ['upsert sync synchronize integration', 'external upsert sync'],
  ['dedupe deduplicate duplicate dublette', 'duplicates merge'],
  ['reassign owner transfer', 'hand-over hand user_id'],
  ['batch mass many', 'bulk mass'],
  ['import migrate migration csv xlsx excel vcard spreadsheet', 'import imports export'],
  ['download dump backup', 'export download'],
  ['pdf print', 'print'],
  ['won win close', 'won stage'],
  ['convert conversion', 'convert quote'],
  // Protocol
  ['paging paginate limit offset', 'pagination per_page cursor'],
  ['ratelimit throttle throttling quota', 'rate limits rate_limited'],
  ['sso oauth oidc saml signin signon authenticate', 'authentication session login'],
  ['apikey api-key key credential secret jwt', 'token tokens'],
  ['mfa 2fa factor passwort', 'password login'],
  ['acl rbac access rights role', 'permission permissions roles'],
  ['gdpr dsgvo privacy ccpa forget anonymize', 'erase erasure'],
  ['optout opt-out unsubscribe consent', 'unsubscribe subscribed suppressions'],
  ['vat tax mwst', 'tax taxes'],
  ['price amount cost value revenue money preis', 'price value amount'],
  ['timezone tz utc', 'zone'],
  ['etag concurrency conflict locking lock', 'version if-match version_mismatch'],
  ['retry retries', 'idempotency retries'],
  ['signature hmac verify', 'signature'],
  ['callback hook subscription', 'webhook webhooks'],
  ['stream sse realtime polling audit', 'events feed history'],
  ['sdk library typescript python javascript postman', 'clients'],
  ['openapi swagger spec schema', 'contract openapi'],
  ['status health monitoring uptime', 'health readiness status'],
]

/** The alternatives of a word, joined by blanks. */
export const synonyms: Readonly<Record<string, string>> = Object.fromEntries(
  groups.flatMap(([words, meant]) => words.split(' ').map((word) => [word, meant] as const)),
)

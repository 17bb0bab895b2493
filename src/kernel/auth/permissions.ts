// The permission keys of roles and the areas of token abilities, with the rules among them (DOMAIN 6.4, 7.1, 7.2). The
// contract alone says which key and ability an operation needs (x-permission, x-ability).

const crud = (prefix: string, ...more: string[]): string[] => [
  prefix,
  ...['create', 'edit', 'delete', ...more].map((verb) => `${prefix}.${verb}`),
]

/** Every key a role can hold, parents before children. Shape: dotted lower-case words. Source: DOMAIN 7.2. */
export const permissionKeys: readonly string[] = [
  'dashboard',
  ...crud('leads', 'view', 'export'),
  ...crud('quotes', 'print', 'export'),
  'mail',
  ...['inbox', 'draft', 'outbox', 'sent', 'trash', 'compose', 'view', 'edit', 'delete'].map((verb) => `mail.${verb}`),
  ...crud('activities', 'export'),
  'contacts',
  ...crud('contacts.persons', 'view', 'export'),
  ...crud('contacts.organizations', 'export'),
  ...crud('products', 'view', 'inventory', 'export'),
  'settings',
  'settings.user',
  ...crud('settings.user.groups'),
  ...crud('settings.user.roles'),
  ...crud('settings.user.users'),
  'settings.user.tokens',
  'settings.lead',
  ...crud('settings.lead.pipelines'),
  ...crud('settings.lead.sources'),
  ...crud('settings.lead.types'),
  'settings.automation',
  ...crud('settings.automation.attributes'),
  ...crud('settings.automation.email_templates'),
  ...crud('settings.automation.workflows'),
  ...crud('settings.automation.events'),
  ...crud('settings.automation.campaigns', 'send'),
  ...crud('settings.automation.webhooks'),
  'settings.other_settings',
  ...crud('settings.other_settings.tags'),
  ...crud('settings.other_settings.web_forms', 'view'),
  'settings.inventory',
  ...crud('settings.inventory.warehouses'),
  ...crud('settings.inventory.locations'),
  'settings.data_transfer',
  ...crud('settings.data_transfer.imports', 'import'),
  'configuration',
  'events',
]

/** The areas of a token's abilities (DOMAIN 6.4). `users`: users, roles, groups and other users' tokens. */
export const abilityAreas: readonly string[] = [
  'leads',
  'persons',
  'organizations',
  'quotes',
  'products',
  'activities',
  'emails',
  'settings',
  'users',
  'automation',
  'data-transfer',
  'events',
  'reports',
  'files',
  'account',
]

const known = new Set(permissionKeys)

export const isPermissionKey = (key: string): boolean => known.has(key)

/** The keys with every ancestor that is a key itself, in the order of `permissionKeys`. */
export function withAncestors(keys: readonly string[]): string[] {
  const wanted = new Set<string>()
  for (const key of keys) {
    const parts = key.split('.')
    for (let length = 1; length <= parts.length; length++) {
      const ancestor = parts.slice(0, length).join('.')
      if (known.has(ancestor)) wanted.add(ancestor)
    }
  }
  return permissionKeys.filter((key) => wanted.has(key))
}

export interface PermissionNode {
  key: string
  name: string
  children: PermissionNode[]
}

const inWords = (segment: string): string => {
  const words = segment.replaceAll('_', ' ')
  return words.charAt(0).toUpperCase() + words.slice(1)
}

/** All keys as a tree, for `listPermissions`. */
export function permissionTree(): PermissionNode[] {
  const nodes = new Map<string, PermissionNode>()
  const top: PermissionNode[] = []
  for (const key of permissionKeys) {
    const parts = key.split('.')
    const node: PermissionNode = { key, name: inWords(parts.at(-1) ?? key), children: [] }
    nodes.set(key, node)
    const parent = nodes.get(parts.slice(0, -1).join('.'))
    ;(parent?.children ?? top).push(node)
  }
  return top
}

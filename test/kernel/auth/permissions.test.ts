// The permission keys: their number, their groups, and that the contract requires only these keys.
import { describe, expect, it } from 'vitest'
import { permissionKeys } from '../../../src/contract/operations.gen.ts'
import {
  isPermissionKey,
  type PermissionNode,
  permissionTree,
  withAncestors,
} from '../../../src/kernel/auth/permissions.ts'
import { facts } from '../../support/schema.ts'

describe('permissionKeys', () => {
  it('are 134, each once, parents before children', () => {
    expect(permissionKeys).toHaveLength(134)
    expect(new Set(permissionKeys).size).toBe(134)
    for (const [index, key] of permissionKeys.entries()) {
      for (const ancestor of withAncestors([key])) expect(permissionKeys.indexOf(ancestor)).toBeLessThanOrEqual(index)
    }
  })

  it('include every key the contract asks for', () => {
    const asked = facts.flatMap(([, { permission }]) => permission ?? [])
    expect(asked.filter((key) => !isPermissionKey(key))).toEqual([])
  })
})

describe('withAncestors', () => {
  it('adds what a key stands on, and nothing beside it', () => {
    expect(withAncestors(['settings.lead.sources.edit'])).toEqual([
      'settings',
      'settings.lead',
      'settings.lead.sources',
      'settings.lead.sources.edit',
    ])
    expect(withAncestors(['leads.create', 'leads'])).toEqual(['leads', 'leads.create'])
    expect(withAncestors([])).toEqual([])
  })

  it('leaves out unknown keys', () => {
    expect(withAncestors(['constructor', 'leads.nope', ''])).toEqual(['leads'])
  })

  it('changes nothing the second time', () => {
    const once = withAncestors(permissionKeys.filter((key) => key.endsWith('.edit')))
    expect(withAncestors(once)).toEqual(once)
  })
})

describe('permissionTree', () => {
  it('holds every key once, below its parent', () => {
    const walk = (nodes: PermissionNode[]): string[] => nodes.flatMap(({ key, children }) => [key, ...walk(children)])
    expect(walk(permissionTree()).sort()).toEqual([...permissionKeys].sort())
    const leads = permissionTree().find(({ key }) => key === 'leads')
    expect(leads?.children.map(({ key }) => key)).toContain('leads.create')
  })
})

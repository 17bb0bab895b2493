// The permission keys of roles: their ancestors and their tree. The contract
// lists the keys (schema PermissionKey) and the key that each operation needs (x-permission).
import { permissionKeys } from '../../contract/operations.gen.ts'
import { capital } from '../values/format.ts'

const known = new Set(permissionKeys)

export const isPermissionKey = (key: string): boolean => known.has(key)

/**
 * Returns the keys and their ancestors (`a` and `a.b` for `a.b.c`) in the order of
 * `permissionKeys`. Omits texts that are not permission keys.
 */
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

const inWords = (segment: string): string => capital(segment.replaceAll('_', ' '))

/** Returns all permission keys as a tree, for the operation `listPermissions`. */
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

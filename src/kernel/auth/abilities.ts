// Abilities limit what a token may do. The contract lists the areas (x-areas) and the
// ability that each operation needs (x-ability).
import { abilityAreas } from '../../contract/operations.gen.ts'

/** Every ability that a token can have. */
export const knownAbilities: readonly string[] = [
  '*',
  '*:read',
  ...abilityAreas.flatMap((area) => [`${area}:*`, `${area}:read`, `${area}:write`]),
]

/**
 * Returns whether one of `abilities` includes the ability `wanted`. For example, `leads:*` includes
 * `leads:write`, and `*:read` includes `leads:read`.
 */
export function covers(abilities: readonly string[], wanted: string): boolean {
  if (abilities.includes('*') || abilities.includes(wanted)) return true
  if (wanted === 'any:read') return abilities.some((each) => /:(read|\*)$/.test(each))
  if (wanted === 'any:write') return abilities.some((each) => /:(write|\*)$/.test(each))
  const [area, verb] = wanted.split(':')
  if (verb === '*')
    return (
      abilities.includes(`${area}:*`) || (abilities.includes(`${area}:read`) && abilities.includes(`${area}:write`))
    )
  return abilities.includes(`${area}:*`) || (verb === 'read' && abilities.includes('*:read'))
}

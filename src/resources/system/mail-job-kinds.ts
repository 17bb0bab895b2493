// The job kinds whose definition has `isMail`.
import type { Services } from '../../kernel/context.ts'

export const mailJobKinds = ({ jobs }: Services): string[] =>
  [...jobs].flatMap(([kind, { isMail }]) => (isMail ? kind : []))

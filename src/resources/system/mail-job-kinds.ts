// The kinds of jobs that send mail, by their definitions.
import type { Services } from '../../kernel/context.ts'

export const mailJobKinds = ({ jobs }: Services): string[] =>
  [...jobs].flatMap(([kind, { isMail }]) => (isMail ? kind : []))

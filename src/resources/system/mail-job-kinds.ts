// Which jobs mail, as their definitions say: for those who tell of what waits and of what fails.
import type { Services } from '../../kernel/context.ts'

export const mailJobKinds = ({ jobs }: Services): string[] =>
  [...jobs].flatMap(([kind, { isMail }]) => (isMail ? kind : []))

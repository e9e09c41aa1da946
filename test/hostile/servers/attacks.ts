/** All hostile servers, for the runner and for the client's process alike. */
import { answerAttacks } from './answers.ts'
import type { Attack } from './attack.ts'
import { mannersAttacks } from './manners.ts'
import { processAttacks } from './processes.ts'
import { schemaAttacks } from './schemas.ts'

const all: readonly Attack[] = [...answerAttacks, ...mannersAttacks, ...schemaAttacks, ...processAttacks]

export const attacks: readonly Attack[] = all.toSorted((one, other) => Number(one.key.slice(1)) - Number(other.key.slice(1)))

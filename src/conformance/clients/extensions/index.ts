/** The extensions, as far as a client shows from outside whether it keeps to them. */
import type { ClientScenario } from '../scenario.ts'
import { consent } from './consent.ts'
import { flowing } from './flowing.ts'
import { problems } from './problems.ts'
import { states } from './states.ts'
import { things } from './things.ts'

export const extensionClientScenarios: readonly ClientScenario[] = [...problems, ...states, ...consent, ...flowing, ...things]

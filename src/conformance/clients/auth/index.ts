/** Clients that sign in by OAuth where nobody has to look at a page. */
import type { ClientScenario } from '../scenario.ts'
import { mistrusting } from './mistrusting.ts'
import { signingIn } from './signing-in.ts'

export const authClientScenarios: readonly ClientScenario[] = [...signingIn, ...mistrusting]

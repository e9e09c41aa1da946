/** Attacks on the places where rooms meet: consent, approvals, trust of files, revocation, visibility, shares, ambiguous messages, secrets. */
import type { HostileSuite } from '../case.ts'
import { cases as auth } from './auth.ts'
import { cases as cli } from './cli.ts'
import { cases as consent } from './consent.ts'
import { cases as engine } from './engine.ts'
import { cases as gateAuth } from './gate-auth.ts'
import { cases as gateTenants } from './gate-tenants.ts'
import { cases as quotas } from './quotas.ts'
import { cases as turns } from './turns.ts'

export const boundaries: HostileSuite = {
  title: 'boundaries where rooms meet',
  open: async () => ({
    cases: [...consent, ...turns, ...cli, ...gateAuth, ...gateTenants, ...quotas, ...engine, ...auth],
    close: async () => {},
  }),
}

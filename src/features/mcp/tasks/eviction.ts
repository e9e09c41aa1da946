/**
 * Which tasks give way when there is no room for one more. Only what has ended does: first that of callers who did not sign in, and of
 * whoever holds most. A user that has all it may have gives up what ended first of its own.
 */
import { isAnonymous, Occupancy, shareText } from '../../../core/occupancy.ts'
import { McpError } from '../../../jsonrpc/error.ts'

/** How much a table of tasks holds. */
export interface TableLimits {
  /** Tasks in all. */
  readonly tasks: number
  readonly tasksPerPrincipal: number
  /** JSON text of all results together. */
  readonly bytes: number
}

/** Where nothing else is said. */
export const tableLimits: TableLimits = { tasks: 1_000, tasksPerPrincipal: 100, bytes: 64 * 1024 * 1024 }

/** As much of a task as decides. */
export interface EvictionCandidate {
  readonly id: string
  /** Whose share it is counted in. */
  readonly account: string
  readonly ended: boolean
  readonly bytes: number
}

/** Whether there is a place for a new task of this account, and nothing has to give way. */
export function hasRoom(kept: readonly EvictionCandidate[], account: string, limits: TableLimits): boolean {
  const { places } = sharesOf(kept, limits)
  return !holdsAll(places, account, limits) && places.refusal(account) === undefined
}

/** The tasks to forget for a new one of this account, of those that are kept, oldest first. Throws a busy refusal when there are none. */
export function roomForOne(
  kept: readonly EvictionCandidate[],
  account: string,
  limits: TableLimits,
): readonly EvictionCandidate[] {
  const { tasks, tasksPerPrincipal } = limits
  const { places, shares } = sharesOf(kept, limits)
  const own = shares.get(account)?.oldest
  if (holdsAll(places, account, limits)) {
    if (own !== undefined) return [own]
    throw full(`${tasksPerPrincipal} tasks of yours are kept`)
  }
  const refusal = places.refusal(account)
  if (refusal === undefined) return []
  const other = yielding(shares.values(), places, account)
  if (other !== undefined) return [other]
  // Its share is used up, or it holds as much as anybody: then what it forgets is its own.
  if (own !== undefined) return [own]
  throw refusal === 'share' ? full(`${shareText(`${tasks} tasks`)}`) : full(`${tasks} tasks are kept`)
}

/** What one account holds. */
interface AccountShare {
  readonly account: string
  tasks: number
  /** The oldest of its tasks that has ended, and how many tasks are older than that one. */
  oldest: EvictionCandidate | undefined
  older: number
}

/** Many tasks are of few accounts: each is counted once, and what follows looks at accounts. */
function sharesOf(
  kept: readonly EvictionCandidate[],
  limits: TableLimits,
): { readonly places: Occupancy; readonly shares: ReadonlyMap<string, AccountShare> } {
  const shares = new Map<string, AccountShare>()
  let share: AccountShare | undefined
  for (let older = 0; older < kept.length; older++) {
    const task = kept[older] as EvictionCandidate
    if (share?.account !== task.account) share = shares.get(task.account)
    if (share === undefined) {
      share = { account: task.account, tasks: 0, oldest: undefined, older: 0 }
      shares.set(task.account, share)
    }
    share.tasks++
    if (share.oldest !== undefined || !task.ended) continue
    share.oldest = task
    share.older = older
  }
  const places = new Occupancy(limits.tasks)
  for (const { account, tasks } of shares.values()) places.enter(account, tasks)
  return { places, shares }
}

/** Whether a user has all that one may have. */
function holdsAll(places: Occupancy, account: string, { tasksPerPrincipal }: TableLimits): boolean {
  return !isAnonymous(account) && places.of(account) >= tasksPerPrincipal
}

/** The tasks to forget for a result of so many bytes. Never one of the same account: what it has not fetched yet would go unread. */
export function roomForBytes(
  kept: readonly EvictionCandidate[],
  of: EvictionCandidate,
  more: number,
  limit: number,
): readonly EvictionCandidate[] {
  const sizes = new Map<string, number>()
  let total = more
  for (const { account, bytes } of kept) {
    sizes.set(account, (sizes.get(account) ?? 0) + bytes)
    total += bytes
  }
  const mine = (sizes.get(of.account) ?? 0) + more
  const forgotten: EvictionCandidate[] = []
  for (const task of kept) {
    if (total <= limit) break
    const { account, bytes, ended } = task
    const [stranger, other] = [isAnonymous(account), isAnonymous(of.account)]
    const yields = stranger === other ? (sizes.get(account) ?? 0) > mine : stranger
    if (!ended || bytes === 0 || account === of.account || !yields) continue
    forgotten.push(task)
    sizes.set(account, (sizes.get(account) ?? 0) - bytes)
    total -= bytes
  }
  if (total <= limit) return forgotten
  throw full(`Results of ${total - more} bytes are kept`)
}

/** The oldest that has ended, of who did not sign in if there is one, and of the account that holds most. */
function yielding(shares: Iterable<AccountShare>, places: Occupancy, account: string): EvictionCandidate | undefined {
  let found: AccountShare | undefined
  for (const share of shares) {
    if (share.oldest === undefined || !places.yields(share.account, account)) continue
    if (found === undefined || precedes(share, found, places)) found = share
  }
  return found?.oldest
}

function precedes(share: AccountShare, found: AccountShare, places: Occupancy): boolean {
  const [stranger, other] = [isAnonymous(share.account), isAnonymous(found.account)]
  if (stranger !== other) return stranger
  const more = places.weight(share.account) - places.weight(found.account)
  return more === 0 ? share.older < found.older : more > 0
}

/** The refusal of one task, or result, too many. */
function full(what: string): McpError {
  return new McpError('busy', `${what}, which is the limit; wait until some have expired`, { data: { retryAfterMs: 10_000 } })
}

/**
 * Whose call it is, as a key for stores. A principal owns what was made for it, the owner of the process what was made on its pipe;
 * without either a session or a connection is its own owner. Whoever has none of these is nobody: then only a name that nobody can
 * guess says what belongs to whom (a handle that we minted, or one that the caller chose as long), and nothing else is found again.
 */

import { accountKey, ownerKey } from '../core/accounts.ts'
import { digestText } from '../core/digest.ts'
import type { Awaitable } from '../jsonrpc/message.ts'
import type { Conversation, ConversationSlot } from './conversation.ts'
import type { Exchange } from './exchange.ts'

/** Nobody is known, and nothing is remembered from one request to the next: they are all the same to us. */
const anonymous = '~anonymous'

const nameless: ConversationSlot<{ owner: string | undefined }> = { make: () => ({ owner: undefined }) }

/**
 * The key of the principal, or of the process owner on a pipe. Without one a session is its own owner, and so is a connection
 * from elsewhere; callers that have neither share one key. Never contains `/`.
 */
export function ownerOf({ caller, conversation }: Pick<Exchange, 'caller' | 'conversation'>): Awaitable<string> {
  return ownerKey(caller) ?? ownerOfConversation(conversation)
}

async function ownerOfConversation(conversation: Conversation): Promise<string> {
  const { session, connection } = conversation
  const known = conversation.remembered(nameless)?.owner
  if (known !== undefined) return known
  if (session === undefined && connection === undefined) return anonymous
  const memory = conversation.recall(nameless)
  memory.owner ??= session === undefined ? crypto.randomUUID() : (await digestText(`session ${session}`)).slice(0, 22)
  return memory.owner
}

/** What is done in this conversation is done for that owner, wherever nobody else is known. */
export function ownedBy(conversation: Conversation, owner: string): void {
  conversation.recall(nameless).owner = owner
}

/** Whose share of a bounded table it counts against. */
export function accountOf({ caller }: Pick<Exchange, 'caller'>): Awaitable<string> {
  return accountKey(caller)
}

/** Characters of a name that nobody can guess: 128 bits take so many. */
export const secretLength = 22

/** Whether an owner may be asked for what a caller calls by this name: of nobody only where the name is a secret. */
export function mayName(owner: string, name: string): boolean {
  return !isNobody(owner) || name.length >= secretLength
}

/** The name as it is kept: one that others could guess is completed to a secret where nobody is known. */
export function secretName(owner: string, name: string, longest: number): string {
  return mayName(owner, name) ? name : `${name.slice(0, longest - 37)}.${crypto.randomUUID()}`
}

/** Whether a key stands for all those who are not known: then nothing can be theirs without a handle that says so. */
export function isNobody(owner: string): boolean {
  return owner === anonymous
}

/** The key of a principal that is not there now; without a name that of the owner of this process. */
export async function ownerNamed(principal: string | undefined): Promise<string> {
  const caller = { carrier: 'memory', ...(principal === undefined ? {} : { principal: { id: principal } }) } as const
  return (await ownerKey(caller)) as string
}

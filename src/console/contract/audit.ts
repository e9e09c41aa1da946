/** The audit log: what was done, by whom, and by which rule. */

/** An entry of the audit log. `vivarium gateway audit FILE --format json` prints the same members, with `at` as a date. */
export interface AuditEntry {
  /** Its place in the log. Absent in news of the stream, which are sent before the entry is stored. */
  readonly position?: number
  /** When it happened. */
  readonly at: number
  /** `call_ended`, `call_begun`, `call_settled`, `confirmation_answered`, `noted` and others. */
  readonly event: string
  /** Joins the entry with the log and the problem of the same request. */
  readonly correlation?: string
  /** The key of who called. Absent in news of the stream. */
  readonly owner?: string
  /** The name that was called. */
  readonly target: string
  /** `success`, `failure`, `refused`, `replayed`, `held`, `approved`, `begun`. */
  readonly outcome?: string
  /**
   * Further facts: `client`, `subject`, `server`, `tool`, `ms`, `rule`, `code`, `by` (who decided), `from`, `times` (how many of a kind one
   * entry stands for), `method`, `input_digest`, `arguments`, `approval` (its id), `reason`.
   */
  readonly more?: Readonly<Record<string, string | number | undefined>>
}

/** `GET /audit`: newest first. All filters must hold. */
export interface AuditQuery {
  /** Entries of this server. */
  readonly server?: string
  /** By the name that clients see, or by its own. */
  readonly tool?: string
  /** Entries of this client. */
  readonly client?: string
  /** Entries of this token subject. */
  readonly subject?: string
  /** Entries of this event. */
  readonly event?: string
  /** Entries with this outcome. */
  readonly outcome?: string
  /** Entries that name this rule. */
  readonly rule?: string
  /** Entries with this code of a problem. */
  readonly code?: string
  /** Entries of what this person decided or did. */
  readonly by?: string
  /** Entries of this request. */
  readonly correlation?: string
  /** Entries from this time on. */
  readonly since?: number
  /** Entries before this time. */
  readonly until?: number
  /** Text that any field holds, without regard to case; at most 200 characters. */
  readonly text?: string
}

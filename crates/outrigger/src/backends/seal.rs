//! Receipts of runs that no abp child did: the events of the log, sealed.

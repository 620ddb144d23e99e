//! What host and keeper say to each other over the control socket.
